from expkit import plugins

__getattr__ = plugins.by_class_name("sections")
__dir__ = plugins.class_names("sections")

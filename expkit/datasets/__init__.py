from expkit import plugins

__getattr__ = plugins.by_class_name("datasets")
__dir__ = plugins.class_names("datasets")

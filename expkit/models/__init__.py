from expkit import plugins

__getattr__ = plugins.by_class_name("models")
__dir__ = plugins.class_names("models")

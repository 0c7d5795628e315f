from expkit import plugins

__getattr__ = plugins.by_class_name("loggers")
__dir__ = plugins.class_names("loggers")

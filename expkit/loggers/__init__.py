from expkit import plugins

__getattr__ = plugins.by_class_name("loggers")

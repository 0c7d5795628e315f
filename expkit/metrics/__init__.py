from expkit import plugins

__getattr__ = plugins.by_class_name("metrics")
__dir__ = plugins.class_names("metrics")

from expkit import plugins

__getattr__ = plugins.by_class_name("samplers")
__dir__ = plugins.class_names("samplers")

from expkit import plugins

__getattr__ = plugins.by_class_name("executors")
__dir__ = plugins.class_names("executors")

from expkit import plugins

__getattr__ = plugins.by_class_name("optimizers")
__dir__ = plugins.class_names("optimizers")

from expkit import plugins

__getattr__ = plugins.by_class_name("algorithms")
__dir__ = plugins.class_names("algorithms")

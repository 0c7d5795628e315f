from expkit import plugins

__getattr__ = plugins.by_class_name("callbacks")
__dir__ = plugins.class_names("callbacks")

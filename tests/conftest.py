from hypothesis import settings

# A machine that is busy with an emulation takes any time for one example; slow is not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

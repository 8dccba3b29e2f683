import signal

from hypothesis import settings

# A machine that is busy with an emulation takes any time for one example; slow is not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Started in the background by a shell, tests would hand on to what they start that it ignores
# Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

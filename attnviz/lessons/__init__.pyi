from . import history as history
from . import order as order
from . import scaling as scaling

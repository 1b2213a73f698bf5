from . import counting as counting
from . import measurement as measurement
from . import streaming as streaming

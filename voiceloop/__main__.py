"""`python -m voiceloop`."""

import sys

from voiceloop.cli import main

sys.exit(main())

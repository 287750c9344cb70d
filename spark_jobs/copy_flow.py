"""The copy of one flow, as spark-submit starts it. Defines nothing: Spark would pickle it by value.

Not called copy.py: a script's folder comes first on the module path, and Spark needs Python's own `copy`.
"""

import sys

from causeway.spark.copy_job import main

raise SystemExit(main(sys.argv[1:]))

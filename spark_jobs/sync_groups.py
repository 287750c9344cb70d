"""The groups of one flow, as spark-submit starts it. Defines nothing: Spark would pickle it by value."""

import sys

from causeway.spark.groups_job import main

raise SystemExit(main(sys.argv[1:]))

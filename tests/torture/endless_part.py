"""A part of the torture that never ends, for the test of the runner."""

import time

from tests.torture.bed import Bed, main


def torture(bed: Bed) -> None:
    while bed.passed_s >= 0:
        time.sleep(1)


if __name__ == "__main__":
    main("endless_part", torture)

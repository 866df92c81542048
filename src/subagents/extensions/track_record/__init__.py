"""What agents' attempts came to: performance records, statistics, sums over time."""

from subagents.extension import Extension

PACKAGE = "subagents.extensions.track_record"

extension = Extension(
    name="track_record",
    routes=(f"{PACKAGE}.stats_routes",),
    parts=f"{PACKAGE}.track_record_log:TrackRecords",
)

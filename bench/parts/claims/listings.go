package claims

import (
	"context"
	"fmt"

	"understudy/bench/parts/folders"
	"understudy/bench/rig"
)

var listingByOffsets = claim{
	name: "listings-by-offsets", systems: "28",
	says:    "Offsets into two listings of 10,000 entries take 4 allocations, objects take 220,000",
	figure:  "220,000 allocations against 4, with as many lines of code",
	measure: measureListings,
}

func measureListings(_ context.Context, r *rig.Run) (finding, error) {
	ms, allocs, bytes, err := folders.MeasureWays(r, r.Times(rounds, 2))
	if err != nil {
		return finding{}, err
	}
	f := finding{
		ours: fmt.Sprintf("%s allocations with objects, %s with offsets, which are %s times as fast", rig.Figure(allocs[1]), count(allocs[0]),
			rig.Figure(medianRatio(ms[1], ms[0]))),
		verdict: judge(allocs[0] <= 4.5 && allocs[1] > 1000, heldThen),
		title:   "Milliseconds to compare two listings",
		bars:    []rig.Bar{bar("objects", ms[1]), bar("offsets (kit/folder)", ms[0])},
		table:   [][]string{{"two listings, all entries equal", "ms", "allocations", "KiB"}},
		text: "Both ways read the same JSON with the same parser, sort by id and merge. The article's printed comparison names deleted entries as new and " +
			"new ones as deleted; a test of kit/folder pins the right way round.",
	}
	for i, name := range []string{"offsets (kit/folder)", "objects"} {
		f.table = append(f.table, []string{name, rig.Figure(rig.Median(ms[i])), count(allocs[i]), rig.Figure(bytes[i] / 1024)})
	}
	return f, nil
}

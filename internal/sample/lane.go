package sample

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
)

// ChooseLane reports whether the servers of a test have the express lane. If not, it turns the lane off in their
// settings file. One test in ten has no lane, chosen by its name and UNDERSTUDY_SEED. Without a seed every test has
// the lane. With UNDERSTUDY_LANE=off only tests whose name contains "Express" have the lane. Settings that already
// have limits are not changed. ChooseLane may be called several times for the same file.
func ChooseLane(test, file string) (on bool, err error) {
	const off = "\nlimits: {request_memory: 0}\n"
	text, err := os.ReadFile(file)
	switch {
	case err != nil:
		return true, err
	case strings.Contains(string(text), off):
		return false, nil
	case strings.Contains(string(text), "\nlimits:") || strings.Contains(test, "Express") || !skipLane(test):
		return true, nil
	}
	return false, os.WriteFile(file, append(text, off...), 0o600)
}

// skipLane reports whether a test is chosen to run without the express lane.
func skipLane(test string) bool {
	return os.Getenv("UNDERSTUDY_LANE") == "off" || ChooseByName(test, 10)
}

// ChooseByName reports whether a test is among the one in n that its name and UNDERSTUDY_SEED choose. Without a seed no
// test is chosen.
func ChooseByName(test string, n uint64) bool {
	seed, h := os.Getenv("UNDERSTUDY_SEED"), fnv.New64a()
	fmt.Fprintf(h, "%s/%s", seed, test)
	return seed != "" && h.Sum64()%n == 0
}

package sample

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
)

// Lane reports whether a test's servers have the express lane. If not, Lane writes that into the file with their settings.
// One test in ten has no lane, chosen by its name and UNDERSTUDY_SEED; without a seed every test has one. With
// UNDERSTUDY_LANE=off only tests of the lane itself have one: their names hold "Express". Settings with limits of their
// own stay as they are. Lane may be called again for the same file.
func Lane(test, file string) (on bool, err error) {
	const off = "\nlimits: {request_memory: 0}\n"
	text, err := os.ReadFile(file)
	switch {
	case err != nil:
		return true, err
	case strings.Contains(string(text), off):
		return false, nil
	case strings.Contains(string(text), "\nlimits:") || strings.Contains(test, "Express") || !without(test):
		return true, nil
	}
	return false, os.WriteFile(file, append(text, off...), 0o600)
}

func without(test string) bool {
	seed, h := os.Getenv("UNDERSTUDY_SEED"), fnv.New64a()
	fmt.Fprintf(h, "%s/%s", seed, test)
	return os.Getenv("UNDERSTUDY_LANE") == "off" || seed != "" && h.Sum64()%10 == 0
}

// This file finds the parts to prove in the code.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// part is a command that must exit with 0.
type part struct {
	name    string
	dir     string // in the product's folder
	command []string
	env     []string
	usual   time.Duration // the expected time, before the real time is known
	limit   time.Duration // when it is given up
	rounds  int           // how often it is run, 0 as once
	within  time.Duration // no round is begun after this
	sources []source      // the code its result speaks of
	hash    string        // of sources, command and environment
	bad     *regexp.Regexp
	ended   *regexp.Regexp // the whole output of a failure that does not count
	tell    *regexp.Regexp // the line worth keeping
}

// expect is how long it will take.
func (p part) expect(known result) time.Duration { return cmp.Or(known.Took, p.usual) }

// detail returns the last line of the output that tell matches.
func (p part) detail(out []byte) string {
	lines := p.tell.FindAll(out, -1)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(strings.Fields(string(lines[len(lines)-1])), " ")
}

// The full counts. All parts together take seven hours on two cores, half of which is fuzzing. A run continues where the run before
// stopped. With more time, parts are run again and their times add up. Environment variables can replace some of the counts.
const (
	fuzzTime      = "2m"
	races         = "20" // or as many as begin within racing
	racing        = 30 * time.Second
	checks        = "1000" // rapid's own default is 100
	serverKills   = "500"
	eraseKills    = "150"
	lateCalls     = "5000"
	dropReads     = "10000" // of records that were not requested before, while connections are dropped
	listRequests  = "20000"
	lostWrites    = "100000"
	hiddenOf      = "3000"   // calls, pairs of which are timed; there are twice as many messages
	hiddenMillion = "333334" // and for 10^6 records
	reading       = "10m"
	answers       = "10000000"
)

// fuzzEnded matches the output of a fuzzer whose time ends while its workers are busy (golang/go#75804). The output for a
// real finding differs.
var fuzzEnded = regexp.MustCompile(`(?m)^--- FAIL: \w+ \([0-9.]+s\)\n    context deadline exceeded\nFAIL$`)

// pkg is the output of `go list -json` for a package.
type pkg struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// find lists the packages of the module and their tests.
func find(ctx context.Context, root string) ([]part, error) {
	gotool := or("GO", "go")
	cmd := exec.CommandContext(ctx, gotool, "list", "-e", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	rounds, err := strconv.Atoi(or("PROVE_RACES", races))
	if err != nil || rounds < 1 {
		return nil, fmt.Errorf("PROVE_RACES must be a number from 1, not %q", os.Getenv("PROVE_RACES"))
	}
	random := withRapid(packages)
	var kill, property, fuzz, race []part
	together := raceTogether(gotool)
	for _, p := range packages {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		tests, full, err := p.tests()
		if err != nil {
			return nil, err
		}
		// The package comes first. After a flag that go does not know, go would pass the package to the test as an argument.
		test := func(args ...string) []string { return append([]string{gotool, "test", p.ImportPath}, args...) }
		ok := regexp.MustCompile(`(?m)^(ok|FAIL|--- FAIL|panic).*$`)
		own := []source{{module: ".", path: p.ImportPath, test: true}}
		if slices.Contains(slices.Concat(p.TestImports, p.XTestImports), pgtest) || p.ImportPath == pgtest {
			together.command = append(together.command, p.ImportPath)
			together.sources = append(together.sources, own...)
		}
		for _, name := range tests {
			switch {
			case strings.HasPrefix(name, "Fuzz"):
				fuzz = append(fuzz, part{
					name: "fuzz " + p.short() + " " + name, usual: 130 * time.Second, limit: 10 * time.Minute, sources: own,
					// By default the fuzzer may spend one of the two minutes on shortening a single long input.
					command: test("-run=^$", "-fuzz=^"+name+"$", "-fuzztime="+or("PROVE_FUZZ", fuzzTime), "-fuzzminimizetime=1s"),
					tell:    regexp.MustCompile(`(?m)^(fuzz: elapsed.*|FAIL.*|\s+--- FAIL.*)$`), ended: fuzzEnded,
				})
			case kills[name] != "":
				kill = append(kill, part{
					name: "kill " + p.short() + " " + name, usual: 2 * time.Minute, limit: 30 * time.Minute, sources: own,
					env:     []string{"PROVE_KILLS=" + or("PROVE_KILLS", kills[name])},
					command: test("-count=1", "-v", "-timeout=30m", "-run=^"+name+"$"), tell: ok,
				})
			}
		}
		if full && p.short() == randomAPIs {
			property = append(property, drawnAPIs(gotool, p, own))
		} else if full {
			property = append(property, part{
				name: "full " + p.short(), usual: 5 * time.Minute, limit: 30 * time.Minute, sources: own,
				env:     []string{fullCounts + "=1", laneOff}, // the race parts have it
				command: test("-count=1", "-timeout=30m"), tell: ok,
			})
		}
		if random[p.ImportPath] {
			property = append(property, part{
				name: "property " + p.short(), usual: time.Minute, limit: 30 * time.Minute, sources: own,
				command: test("-count=1", "-timeout=30m", "-rapid.checks="+or("PROVE_CHECKS", checks)), tell: ok,
			})
		}
		race = append(race, part{
			name: "race " + p.short(), usual: 2 * time.Minute, limit: time.Hour, sources: own,
			rounds: rounds, within: racing,
			command: test("-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-count=1", "-shuffle=on", "-timeout=30m"), tell: ok,
		})
	}
	if len(together.sources) > 0 {
		race = append(race, together)
	}
	return slices.Concat(kill, wholeServer(gotool), property, fuzz, race, []part{reader(gotool), soak(gotool)}), nil
}

// pgtest is the package that starts PostgreSQL for tests.
const pgtest = "understudy/internal/store/pgtest"

// raceTogether runs the packages that use PostgreSQL at the same time, four by four, each with sixteen tests at a time and twenty times. The
// caller adds the packages.
func raceTogether(gotool string) part {
	return part{
		name: "race on PostgreSQL together", usual: 50 * time.Minute, limit: 3 * time.Hour,
		command: []string{
			gotool, "test", "-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-p=4", "-parallel=16",
			"-count=" + or("PROVE_RACES", races), "-shuffle=on", "-timeout=3h",
		},
		tell: regexp.MustCompile(`(?m)^(ok|FAIL|--- FAIL|panic).*$`),
	}
}

// wholeServer returns the parts that run the built binary. They are tests of the e2e module that have a full count, or
// that make test runs only as a sample.
func wholeServer(gotool string) []part {
	all := []part{
		endToEnd(gotool, "kill", "crashes/TestKillServer", "PROVE_KILLS="+or("PROVE_KILLS", serverKills), `kills in `, 8*time.Minute),
		endToEnd(gotool, "kill", "operation/TestKillErasing", "PROVE_ERASE_KILLS="+or("PROVE_KILLS", eraseKills), `kills while erasing`, 2*time.Minute),
		endToEnd(gotool, "late", "faults/TestLateChanges", "PROVE_LATE="+or("PROVE_LATE", lateCalls), `late changes among `, time.Minute),
		endToEnd(gotool, "drop", "faults/TestDroppedConnections", "PROVE_DROPS="+or("PROVE_DROPS", dropReads), `reads right, `, 5*time.Minute),
		endToEnd(gotool, "lists", "answers/TestListsFromRecords", "PROVE_LISTS="+or("PROVE_LISTS", listRequests), `requests the same, `, 2*time.Minute),
		endToEnd(gotool, "lost", "crashes/TestNothingIsLost", "PROVE_WRITES="+or("PROVE_WRITES", lostWrites), `operations in `, 20*time.Minute),
		withoutLane(gotool),
		browsers(gotool),
		hiddenOnPostgreSQL(gotool),
		readsOnPostgreSQL(gotool),
		endToEnd(gotool, "full", "vendors/TestCaching", fullCounts+"=1", `passed: `, time.Minute),
		endToEnd(gotool, "full", "vendors/TestGenericAtRandom", fullCounts+"=1", ` right \(`, 2*time.Minute),
		endToEnd(gotool, "time", "hidden/TestHiddenValuesTakeAsLongAsUnknownOnes", "PROVE_HIDDEN="+or("PROVE_HIDDEN", hiddenOf), `--- PASS`, time.Minute),
		endToEnd(gotool, "time at 10^6 records,", "hidden/TestHiddenValuesTakeAsLongAsUnknownOnes",
			"PROVE_HIDDEN="+or("PROVE_HIDDEN_MILLION", hiddenMillion), `--- PASS`, 6*time.Minute),
		endToEnd(gotool, "full", "crashes/TestAMemoryLimitIsKept", fullCounts+"=1", `resident at most`, 2*time.Minute),
		endToEnd(gotool, "full", "crashes/TestUnreadAnswersKeepTheMemoryLimit", fullCounts+"=1", `resident at most`, time.Minute),
		endToEnd(gotool, "full", "vendors/TestPackagesOfWholeDocuments", fullCounts+"=1", `operations equal`, 4*time.Minute),
	}
	for _, test := range []string{
		"TestReleaseIsReproducible", "TestOtherPlatformsCompile", "TestDebianPackageInItsSystem", "TestImageInAContainer", "TestRenamedModuleIsBuiltElsewhere",
	} {
		all = append(all, ofBench(gotool, "release", test))
	}
	all = append(all, ofBench(gotool, "compare", "TestSameAgainstSame"), ofBench(gotool, "compare", "TestSlowDownOfThreePercent"))
	for _, test := range []string{
		"markers/TestMarkers", "markers/TestMarkersOnPostgreSQL", "hidden/TestHiddenRows", "hidden/TestFirstListUnderRowRulesShowsWhatWasJustWritten",
		"hidden/TestMaskedSearch", "sdk/TestEveryPackageWalksEveryList", "connect/TestPackagesWalkThroughTunnels",
		"viewer/TestBrowserSmallScreen", "viewer/TestBrowserAxe", "hidden/TestHiddenValuesReadAsMuchAsUnknownOnes",
		"hidden/TestHiddenRepositories", "faults/TestAHostileUpstream", "vendors/TestGitHubListsFromRecords",
		"vendors/TestStripeListsFromRecords", "vendorsdk/TestGitHubPackagesWalkDuringArrivals", "vendorsdk/TestStripePackagesWalkDuringArrivals",
		"vendorsdk/TestStripeSDKsAtRandom", "crashes/TestDamagedFileEndsInASentence", "crashes/TestZeroMQSubscriberThroughKills",
		"lists/TestBrowserRowsChangeInPlace", "lists/TestBrowserTablesFit", "platforms/TestEveryPlatformHasItsTypes",
		"nodes/TestRevokedCredentialIsRefusedAtTheOthers", "nodes/TestEndedSessionIsRefusedAtTheOthers",
		"nodes/TestChangeReachesSubscriberOfAnotherNode", "nodes/TestDatabaseIsAway", "nodes/TestKilledNodeFailsNoReadOfTheOthers",
		"nodes/TestRollingUpgrade", "nodes/TestWorkersAndNodesAreKilled", "operation/TestKillBackingUp", "nodes/TestBudgetIsOneForAll",
		"nodes/TestSlowClockEndsTheLeaseInTime", "nodes/TestSteppedClock", "nodes/TestLostMessagesOnlyDelayWrites", "nodes/TestDatabaseHangs",
		"nodes/TestPromotedStandbyThatLags", "nodes/TestTwoProcessesWithTLS", "operation/TestRestartUnderLoad", "operation/TestRestartOverTLS",
		"operation/TestBackupOnPostgreSQL",
	} {
		all = append(all, endToEnd(gotool, "full", test, fullCounts+"=1", `--- PASS`, time.Minute))
	}
	return all
}

// askPorts are the folders of e2e whose tests send requests to drop-in ports, including the tests with SDKs.
var askPorts = []string{"answers", "connect", "crashes", "faults", "hidden", "lists", "markers", "operation", "sdk", "support", "vendors",
	"vendorsdk", "viewer"}

// withoutLane runs the tests of askPorts against servers without the express lane, one folder after the other.
func withoutLane(gotool string) part {
	p := endToEnd(gotool, "full", "answers/.*", laneOff, `express lane: |^ok`, 4*time.Minute)
	p.name = "full e2e without the express lane"
	p.command = slices.Insert(p.command[:len(p.command)-1], 2, "-p=1")
	p.command = append(p.command, "-skip=^TestBrowser|^TestDocs|^TestSoak")
	p.sources = p.sources[1:]
	for _, folder := range askPorts {
		p.command = append(p.command, "./"+folder)
		p.sources = append(p.sources, source{module: "e2e", path: "understudy/e2e/" + folder, test: true})
	}
	return p
}

// browsers runs all tests with a browser. make test runs half of them.
func browsers(gotool string) part {
	p := endToEnd(gotool, "all", "viewer/TestBrowser.*", "UNDERSTUDY_SEED=", `^ok`, 4*time.Minute)
	p.name = "all e2e tests with a browser"
	for _, folder := range []string{"support", "lists"} {
		p.command = append(p.command, "./"+folder)
		p.sources = append(p.sources, source{module: "e2e", path: "understudy/e2e/" + folder, test: true})
	}
	return p
}

// hiddenOnPostgreSQL runs the tests of what is hidden with PostgreSQL as the store, a sample as in make test. It leaves out those that read
// the database's file, measure times alone, or count reads: what a process reads of the others would count, too.
func hiddenOnPostgreSQL(gotool string) part {
	p := endToEnd(gotool, "sample", "hidden/.*", "UNDERSTUDY_STORE=postgresql", `^ok`, 2*time.Minute)
	p.name = "sample e2e hidden on PostgreSQL"
	p.command = append(p.command, "-skip=^TestUpstreamSecretStaysInside|TakeAsLong|ReadAsMuch")
	return p
}

// readsOnPostgreSQL counts what is read for values that are hidden and for unknown ones, with PostgreSQL as the store.
func readsOnPostgreSQL(gotool string) part {
	p := endToEnd(gotool, "full", "hidden/TestHiddenValuesReadAsMuchAsUnknownOnes", "UNDERSTUDY_STORE=postgresql", `--- PASS`, 3*time.Minute)
	p.name += " on PostgreSQL"
	p.env = append(p.env, fullCounts+"=1")
	return p
}

// soak is the test of answers while faults change every second and records change, too.
func soak(gotool string) part {
	p := endToEnd(gotool, "soak", "faults/TestSoak", "PROVE_ANSWERS="+or("PROVE_ANSWERS", answers), `answers in `, 14*time.Minute)
	p.name = "soak answers"
	return p
}

// randomAPIs is the package that draws random APIs.
const randomAPIs = "internal/randomapitest"

// drawnAPIs syncs 500 random APIs with a fixed seed and 500 with a new seed, each with a spec drawn from the API. It
// records how many became complete.
func drawnAPIs(gotool string, p pkg, own []source) part {
	return part{
		name: "random APIs", usual: time.Minute, limit: 30 * time.Minute, sources: own, env: []string{fullCounts + "=1"},
		command: []string{gotool, "test", p.ImportPath, "-count=1", "-v", "-timeout=30m", "-run=^TestRandomAPIs"},
		tell:    regexp.MustCompile(`(?m)^.*(of both seeds: |--- FAIL|panic).*$`),
	}
}

// endToEnd is a test of the e2e module, named by its folder and its function. The line of the output that contains told is stored.
func endToEnd(gotool, what, where, env, told string, usual time.Duration) part {
	folder, test, _ := strings.Cut(where, "/")
	return part{
		name: what + " e2e " + test, dir: "e2e", usual: usual, limit: 2 * time.Hour, env: []string{env},
		sources: []source{{module: "e2e", path: "understudy/e2e/" + folder, test: true}, {module: "e2e", path: "understudy/cmd/understudy"}},
		command: []string{gotool, "test", "-count=1", "-v", "-timeout=2h", "-run=^" + test + "$", "./" + folder},
		tell:    regexp.MustCompile(`(?m)^.*(` + told + `|--- FAIL|panic).*$`),
	}
}

// ofBench is a test of a package of the bench, such as of what is released.
func ofBench(gotool, folder, test string) part {
	return part{
		name: folder + " " + test, dir: "bench", usual: 10 * time.Minute, limit: time.Hour, env: []string{fullCounts + "=1"},
		sources: []source{{module: "bench", path: "understudy/bench/" + folder, test: true}, {module: "bench", path: "understudy/cmd/understudy"}},
		command: []string{gotool, "test", "-count=1", "-v", "-timeout=1h", "-run=^" + test + "$", "./" + folder},
		tell:    regexp.MustCompile(`(?m)^.*(--- PASS|--- FAIL|panic).*$`),
	}
}

// reader is the part of the bench that requests the newest page once a second.
func reader(gotool string) part {
	return part{
		name: "bench reader", dir: "bench", usual: 11 * time.Minute, limit: 30 * time.Minute,
		sources: []source{{module: "bench", path: "understudy/bench"}, {module: "bench", path: "understudy/cmd/understudy"}},
		command: []string{gotool, "run", ".", "-part", "reader", "-reader", or("PROVE_READER", reading)},
		bad:     regexp.MustCompile(`(?m)^missed`), tell: regexp.MustCompile(`(?m)^(ok|missed) .*$`),
	}
}

// kills is how often each test of a package kills a process with kill -9. The tests read it from PROVE_KILLS. Their child processes are
// the test's own binary, without -race. Child processes that run jobs are cheap to replace, so they are killed more often.
var kills = map[string]string{"TestFilesKillNine": "200", "TestKillFollower": "200", "TestKillNine": "200", "TestKillWorker": "1000"}

// fullCounts is the environment variable that makes some tests run their full count.
const fullCounts = "UNDERSTUDY_PROVE"

// laneOff has servers of tests run without the express lane.
const laneOff = "UNDERSTUDY_LANE=off"

// sampled matches calls of test helpers that run only some of the cases unless a full count is set.
var sampled = regexp.MustCompile(`sample\.(Count|OneIn|IsFullRun|Seed|ChooseLane)\(`)

// withRapid returns the packages whose tests check random properties, directly or through a suite in another package.
func withRapid(packages []pkg) map[string]bool {
	const rapid = "pgregory.net/rapid"
	suites := map[string]bool{rapid: true}
	for _, p := range packages {
		if slices.Contains(p.Imports, rapid) {
			suites[p.ImportPath] = true
		}
	}
	found := map[string]bool{}
	for _, p := range packages {
		if slices.ContainsFunc(slices.Concat(p.TestImports, p.XTestImports), func(im string) bool { return suites[im] }) {
			found[p.ImportPath] = true
		}
	}
	return found
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// tests returns the names of the test and fuzz functions of a package, in order, and whether any of them has a full count.
func (p pkg) tests() (out []string, full bool, err error) {
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		data, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, false, err
		}
		full = full || bytes.Contains(data, []byte(fullCounts)) || sampled.Match(data)
		for _, m := range testFunc.FindAllSubmatch(data, -1) {
			out = append(out, string(m[1]))
		}
	}
	slices.Sort(out)
	return out, full, nil
}

// short is the package's path in the module.
func (p pkg) short() string {
	_, rest, ok := strings.Cut(p.ImportPath, "/")
	if !ok {
		return "."
	}
	return rest
}

// or returns an environment variable, or a default if the variable is not set.
func or(name, usual string) string { return cmp.Or(os.Getenv(name), usual) }

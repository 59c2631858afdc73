// The list of counts: how often a test does something in make test, and how often in make prove.

package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	stepsPath = "internal/house/steps.txt"
	provePath = "bench/prove/part.go"
)

var writeSteps = flag.Bool("steps", false, "write "+stepsPath+" anew; counts that got smaller stay as they were")

// TestCountsDoNotFall compares the counts that tests take with internal/house/steps.txt. A line has the folder and the
// name of a function, and for each count that the function takes, in their order: how many cases or steps there are in
// make test, and in make prove. 1/8 is one case in eight; part:whole is a choice without a number. A count that rises,
// and a function that is new or moves, is written by go test ./internal/house -run CountsDoNotFall -steps
func TestCountsDoNotFall(t *testing.T) {
	found, listed := stepsOf(t), readSteps(t)
	if *writeSteps {
		writeStepList(t, found, listed)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		have, want := found[name], listed[name]
		if len(have) < len(want) {
			t.Errorf("%s takes %d counts, %s lists %d", name, len(have), stepsPath, len(want))
			continue
		}
		for i := range want {
			if isFewer(have[i], want[i]) {
				t.Errorf("%s: %s is fewer than the %s of %s", name, have[i], want[i], stepsPath)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !slices.Equal(found[name], listed[name]) {
			t.Errorf("%s: %v now, %v in %s: write it anew with -steps", name, found[name], listed[name], stepsPath)
		}
	}
	if len(found) < 50 {
		t.Errorf("only %d functions take counts", len(found))
	}
}

// Tests take their counts by internal/sample alone, where they are found.
func TestCountsAreTakenBySample(t *testing.T) {
	variable := regexp.MustCompile(`^"(UNDERSTUDY_PROVE|PROVE_\w+)"$`)
	for _, f := range testFiles(t) {
		if f.dir == "internal/sample" || f.dir == "bench/prove" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || called(call) == "sample.CountFrom" {
				return true
			}
			first, ok := firstOf(call.Args).(*ast.BasicLit)
			if ok && variable.MatchString(first.Value) && first.Value != `"PROVE_SEED"` {
				t.Errorf("%s reads %s by %s: take a count by package sample", f.path, first.Value, called(call))
			}
			return true
		})
	}
}

// firstOf returns the first of some arguments; nil for none.
func firstOf(args []ast.Expr) ast.Expr {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// called returns the package and name of a called function.
func called(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// stepsOf returns the counts that each function of a test file takes.
func stepsOf(t *testing.T) map[string][]string {
	t.Helper()
	files, proved := testFiles(t), readProved(t)
	consts, all := map[string]int{}, map[string][]string{"rapid.Check": {ofRapid(t, proved)}}
	for _, f := range files {
		addConsts(consts, f.dir, f.ast)
	}
	for _, f := range files {
		if f.dir == "internal/sample" { // it tests them
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					name := f.dir + "." + fn.Name.Name
					number := func(i int) int { return numberOf(t, f, consts, call.Args[i]) }
					switch called(call) {
					case "sample.Count":
						all[name] = append(all[name], fmt.Sprintf("%d:%d", number(0), number(1)))
					case "sample.OneIn":
						all[name] = append(all[name], fmt.Sprintf("1/%d:1", number(1)))
					case "storetest.FewerChecks":
						all[name] = append(all[name], fmt.Sprintf("1/%d:1", number(1)))
					case "sample.IsFullRun":
						all[name] = append(all[name], "part:whole")
					case "sample.CountFrom":
						all[name] = append(all[name], proved.counts(t, f.dir, fn.Name.Name, call.Args[0], number(1))...)
					}
				}
				return true
			})
		}
	}
	return all
}

// addConsts notes the whole numbers that a file declares as constants. Of two with one name, for two builds, it keeps the smaller.
func addConsts(consts map[string]int, dir string, f *ast.File) {
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST {
			continue
		}
		for _, spec := range d.Specs {
			v := spec.(*ast.ValueSpec)
			for i := range min(len(v.Names), len(v.Values)) {
				name := dir + "." + v.Names[i].Name
				if n, ok := integer(v.Values[i]); ok {
					if before, twice := consts[name]; twice {
						n = min(n, before)
					}
					consts[name] = n
				}
			}
		}
	}
}

// integer returns the value of a literal.
func integer(x ast.Expr) (int, bool) {
	literal, ok := x.(*ast.BasicLit)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.Trim(literal.Value, `"`), 0, 64)
	return int(n), err == nil
}

// numberOf returns the value of an argument, a literal or a constant of the package.
func numberOf(t *testing.T, f file, consts map[string]int, x ast.Expr) int {
	t.Helper()
	if n, ok := integer(x); ok {
		return n
	}
	if name, ok := x.(*ast.Ident); ok {
		if n, ok := consts[f.dir+"."+name.Name]; ok {
			return n
		}
	}
	t.Errorf("%s: a count must be a number or a constant of the package", f.path)
	return 0
}

// proved has the counts that make prove sets by environment variables.
type proved struct {
	byTest map[string][]int // by the name of a test and a variable; of end-to-end tests with the folder in front
	checks int              // of each random property
}

// counts returns the counts of a call of sample.CountFrom.
func (p proved) counts(t *testing.T, dir, test string, variable ast.Expr, usual int) (all []string) {
	t.Helper()
	name := test + " " + variable.(*ast.BasicLit).Value
	if folder, ok := strings.CutPrefix(dir, "e2e/"); ok {
		name = folder + "/" + name
	}
	for _, n := range p.byTest[name] {
		all = append(all, fmt.Sprintf("%d:%d", usual, n))
	}
	if all == nil {
		t.Errorf("%s: %s has no count for it", name, provePath)
	}
	return all
}

// readProved reads the parts of make prove: the map of kills, and calls of endToEnd(_, _, FOLDER/TEST, "VARIABLE="+or(_, CONSTANT), ...).
func readProved(t *testing.T) proved {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), provePath, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	consts, p := map[string]int{}, proved{byTest: map[string][]int{}}
	addConsts(consts, "prove", parsed)
	p.checks = consts["prove.checks"]
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if n.Names[0].Name == "kills" {
				for _, element := range n.Values[0].(*ast.CompositeLit).Elts {
					pair := element.(*ast.KeyValueExpr)
					count, _ := integer(pair.Value)
					test := strings.Trim(pair.Key.(*ast.BasicLit).Value, `"`)
					p.byTest[test+` "PROVE_KILLS"`] = []int{count}
				}
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); !ok || name.Name != "endToEnd" {
				return true
			}
			test, _ := n.Args[2].(*ast.BasicLit)
			setting, _ := n.Args[3].(*ast.BinaryExpr)
			if test == nil || setting == nil {
				return true
			}
			if or, ok := setting.Y.(*ast.CallExpr); ok {
				key := strings.Trim(test.Value, `"`) + " " + strings.Replace(setting.X.(*ast.BasicLit).Value, "=", "", 1)
				p.byTest[key] = append(p.byTest[key], consts["prove."+or.Args[1].(*ast.Ident).Name])
			}
		}
		return true
	})
	return p
}

// ofRapid returns the counts of checks of each random property.
func ofRapid(t *testing.T, p proved) string {
	t.Helper()
	steps, err := os.ReadFile("tools/steps")
	if err != nil {
		t.Fatal(err)
	}
	usual := regexp.MustCompile(`RAPID_CHECKS:-(\d+)`).FindSubmatch(steps)
	if usual == nil || p.checks == 0 {
		t.Fatalf("tools/steps or %s has no count of checks", provePath)
	}
	return fmt.Sprintf("%s:%d", usual[1], p.checks)
}

// isFewer reports whether one of two counts is smaller than before, or no number any more.
func isFewer(now, before string) bool {
	a, b := strings.Split(now, ":"), strings.Split(before, ":")
	for i := range b {
		x, isNumber := share(a[i])
		y, wasNumber := share(b[i])
		if isNumber != wasNumber || x < y {
			return true
		}
	}
	return false
}

// share reads a number or one in so many.
func share(text string) (float64, bool) {
	in, isShare := strings.CutPrefix(text, "1/")
	n, err := strconv.ParseFloat(in, 64)
	if isShare {
		n = 1 / n
	}
	return n, err == nil
}

// readSteps reads lines of a function and its counts.
func readSteps(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(stepsPath)
	if err != nil && !*writeSteps {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) > 1 {
			all[words[0]] = words[1:]
		}
	}
	return all
}

// writeStepList writes what is found, and what is listed where that is more.
func writeStepList(t *testing.T, found, listed map[string][]string) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		counts := found[name]
		for i, before := range listed[name] {
			if i >= len(counts) || isFewer(counts[i], before) {
				counts = listed[name]
				break
			}
		}
		fmt.Fprintln(&b, name, strings.Join(counts, " "))
	}
	if err := os.WriteFile(stepsPath, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// How functions are named and what their comments begin with.

package house

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// required are the names that interfaces of Go and of libraries give a method.
var required = strings.Fields(`As Before Compare Contains Enabled Equal Err Error GoString Header Help Is Key Len Less LogValue
	Exists MarshalBinary MarshalJSON MarshalText
	Hijack Name Next Ok RLock RUnlock RoundTrip Scan ServeHTTP Size Stat String Swap Temporary Timeout Type Unwrap Value init main`)

// TestFunctionsAreNamedAndDescribedInPlainWords holds the rules of names and comments:
//   - a function that acts (it returns nothing, or an error) begins with a verb of verbs.txt;
//   - a function whose only result is a bool begins with is, has, can or such a verb;
//   - no function begins with a word that words.txt lists under "first", and none is a word by itself
//     that is listed under "alone", or another participle;
//   - its comment begins with its name, and what is exported or longer than 15 lines has one;
//   - the comment continues with "is" or "are" in at most 3 % of a folder's functions that return no bool.
func TestFunctionsAreNamedAndDescribedInPlainWords(t *testing.T) {
	w := readWords(t)
	wrong := map[string][]string{}
	comments, nouns := map[string]int{}, map[string][]string{}
	packages := map[string]bool{}
	for _, f := range goFiles(t) {
		packages[f.ast.Name.Name] = true
	}
	for _, f := range productFiles(t) {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			where := f.path + ": " + name
			if reason := w.refuse(fn); reason != "" {
				wrong[f.dir] = append(wrong[f.dir], where+": "+reason)
			}
			words := strings.Fields(fn.Doc.Text())
			switch {
			case len(words) == 0:
				long := fset.Position(fn.End()).Line-fset.Position(fn.Pos()).Line > 15
				if long && name != "main" {
					wrong[f.dir] = append(wrong[f.dir], where+" has more than 15 lines and no comment")
				}
			case strings.TrimRight(words[0], ",") != name:
				wrong[f.dir] = append(wrong[f.dir], where+": its comment begins with "+words[0])
			default:
				comments[f.dir]++
				if !returnsBool(fn) && len(words) > 1 && (words[1] == "is" || words[1] == "are") {
					nouns[f.dir] = append(nouns[f.dir], where+": its comment says what it is, not what it does")
				}
			}
		}
		wrong[f.dir] = append(wrong[f.dir], foreignPrefixes(f, packages)...)
	}
	for dir, all := range nouns {
		if len(all) > max(1, comments[dir]*3/100) {
			wrong[dir] = append(wrong[dir], all...)
		}
	}
	for _, all := range wrong {
		for _, sentence := range all {
			t.Error(sentence)
		}
	}
}

// productFiles returns the files of the root module that a reader of the product reads: no tests, nothing generated.
func productFiles(t *testing.T) []file {
	return slices.DeleteFunc(slices.Clone(goFiles(t)), func(f file) bool {
		return f.test || strings.HasSuffix(f.dir, "test") || ast.IsGenerated(f.ast)
	})
}

// maxVerbs is how many verbs verbs.txt may list. Before a new verb, look for one that says the same.
const maxVerbs = 250

// words are the contents of verbs.txt and words.txt.
type words struct{ verbs, first, alone map[string]bool }

func readWords(t *testing.T) words {
	t.Helper()
	w := words{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, verb := range strings.Fields(readFile(t, "internal/house/verbs.txt")) {
		w.verbs[verb] = true
	}
	if len(w.verbs) > maxVerbs {
		t.Errorf("verbs.txt has %d verbs, at most %d", len(w.verbs), maxVerbs)
	}
	for line := range strings.Lines(readFile(t, "internal/house/words.txt")) {
		fields := strings.Fields(line)
		set := map[string]map[string]bool{"first": w.first, "alone": w.alone}[fields[0]]
		for _, word := range fields[1:] {
			if set != nil && !w.verbs[word] {
				set[word] = true
			}
		}
	}
	return w
}

// refuse returns why a function may not have its name, "" if it may.
func (w words) refuse(fn *ast.FuncDecl) string {
	name := fn.Name.Name
	if slices.Contains(required, name) {
		return ""
	}
	parts := splitName(name)
	first := parts[0]
	second := ""
	if len(parts) > 1 {
		second = parts[1]
	}
	switch {
	case first == "with" && second != "":
		return ""
	case w.first[first]:
		return "no name begins with " + strconv.Quote(first)
	case (w.alone[first] || isParticiple(first)) && !w.verbs[first] && (second == "" || w.first[second]):
		return strconv.Quote(name) + " does not say of what"
	case w.verbs[first] || first == "new" || first == "has" || first == "is" || first == "can":
		return ""
	case returnsBool(fn):
		return "what returns a bool begins with is, has, can or a verb"
	case acts(fn):
		return "what acts begins with a verb of verbs.txt, not with " + strconv.Quote(first)
	}
	return ""
}

// isParticiple reports whether a word ends as a regular participle does.
func isParticiple(word string) bool {
	return strings.HasSuffix(word, "ed") && len(word) > 3 &&
		!slices.Contains([]string{"need", "feed", "seed", "speed", "embed", "exceed", "hundred"}, word)
}

// acts reports whether a function returns nothing, or an error at the end.
func acts(fn *ast.FuncDecl) bool {
	r := fn.Type.Results
	if r == nil || len(r.List) == 0 {
		return true
	}
	id, ok := r.List[len(r.List)-1].Type.(*ast.Ident)
	return ok && id.Name == "error"
}

func returnsBool(fn *ast.FuncDecl) bool {
	r := fn.Type.Results
	if r.NumFields() != 1 {
		return false
	}
	id, ok := r.List[0].Type.(*ast.Ident)
	return ok && id.Name == "bool"
}

// splitName returns the words of a name in lower case.
func splitName(name string) (parts []string) {
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		end := i == len(runes)
		if end || unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			parts = append(parts, strings.ToLower(string(runes[start:i])))
			start = i
		}
	}
	return parts
}

var prefix = regexp.MustCompile(`^"([a-z][a-z0-9]*): `)

// foreignPrefixes returns the errors and log lines of a file that begin with another package's name.
func foreignPrefixes(f file, packages map[string]bool) (wrong []string) {
	allowed := append(strings.Split(f.dir, "/"), f.ast.Name.Name)
	if f.dir == "." {
		allowed = append(allowed, "understudy")
	}
	if f.dir == "internal/config" || slices.Contains([]string{"cmd", "spec"}, allowed[0]) {
		return nil // these begin with the name of a setting, or a command's words
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		fn, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"New", "Errorf", "Debug", "Info", "Warn", "Error"}, fn.Sel.Name) {
			return true
		}
		for _, arg := range call.Args[:1] {
			text, ok := arg.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				continue
			}
			if m := prefix.FindStringSubmatch(text.Value); m != nil && packages[m[1]] && !slices.Contains(allowed, m[1]) {
				wrong = append(wrong, f.path+": "+text.Value+" begins with another package's name")
			}
		}
		return true
	})
	return wrong
}

// packagesOfOneName is in how many packages a file of one name may be.
const packagesOfOneName = 4

// TestFileNamesSaySomething allows one file name in at most four packages.
func TestFileNamesSaySomething(t *testing.T) {
	dirs := map[string][]string{}
	for _, f := range goFiles(t) {
		if !f.test {
			name := path.Base(f.path)
			dirs[name] = append(dirs[name], f.dir)
		}
	}
	for name, all := range dirs {
		if len(all) > packagesOfOneName {
			t.Errorf("%d packages have a file %s: name it by the word that a newcomer would search for", len(all), name)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

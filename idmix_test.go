// Ids of different sorts do not mix: what mixes them does not compile.

package understudy_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const sorts = `package main

import "understudy"

type call struct{}
type message struct{}

func (call) Prefix() string    { return "CA" }
func (message) Prefix() string { return "SM" }

var (
	aCall    understudy.ID[call]
	aMessage understudy.ID[message]
	any      understudy.AnyID
)

func show(id understudy.ID[call]) string { return id.String() }

`

func TestSortsOfIDsDoNotMix(t *testing.T) {
	out, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", "understudy").Output()
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	root := importer.ForCompiler(fset, "gc", func(string) (io.ReadCloser, error) { return os.Open(strings.TrimSpace(string(out))) })
	for line, want := range map[string]string{
		"var x = show(aCall)": "",
		"var x = aCall == understudy.ID[call]{Raw: aMessage.Raw}":      "", // said outright
		"var x, ok = understudy.ParseID[call](aMessage.String())":      "", // and looked at
		"var x = show(aMessage)":                                       "cannot use aMessage",
		"var x = show(any)":                                            "cannot use any",
		"var x = show(\"CA0\")":                                        "cannot use \"CA0\"",
		"var x = aCall == aMessage":                                    "mismatched types",
		"var x = any == aCall":                                         "mismatched types",
		"var x = aCall.Compare(aMessage)":                              "cannot use aMessage",
		"var x understudy.ID[call] = aMessage":                         "cannot use aMessage",
		"var x = understudy.ID[call](aMessage)":                        "cannot convert aMessage",
		"var x = (*understudy.ID[call])(&aMessage)":                    "cannot convert &aMessage",
		"var x = map[understudy.ID[call]]bool{aMessage: true}":         "cannot use aMessage",
		"var x = []understudy.ID[call]{aCall, aMessage}":               "cannot use aMessage",
		"var x understudy.ID[string]":                                  "string does not satisfy understudy.IDKind",
		"type mine struct{ call }; var x understudy.ID[mine] = aCall":  "cannot use aCall",
		"type mine struct{ call }; var x = understudy.ID[mine](aCall)": "cannot convert aCall",
	} {
		file, err := parser.ParseFile(fset, "mix.go", sorts+line+"\nfunc main() {}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		conf := types.Config{Importer: root}
		_, err = conf.Check("main", fset, []*ast.File{file}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", line, err, want)
		}
	}
}

// Package spectest gives tests the built-in specs.
package spectest

import (
	"sync"
	"testing"

	"understudy/spec"
	"understudy/upstream"
)

var read sync.Map // functions that read a spec once, by its name

// BuiltIn returns the built-in spec of that name. It is read once for the process, which takes
// 0.2 s with the race detector: all tests share it, and none may change it. A test that changes
// its spec has one of its own from upstream.BuiltIn.
func BuiltIn(t testing.TB, name string) *spec.Spec {
	t.Helper()
	once, _ := read.LoadOrStore(name, sync.OnceValues(func() (*spec.Spec, error) { return upstream.ReadBuiltIn(name) }))
	sp, err := once.(func() (*spec.Spec, error))()
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

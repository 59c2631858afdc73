package app

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"understudy/internal/jobs"
	"understudy/kit/accesslog"
)

// What has a method Run does its work there: an owner that Serve does not run does nothing.
func TestServeRunsEveryOwner(t *testing.T) {
	a := openExporting(t).h
	running := map[string]bool{}
	for _, task := range a.tasks {
		running[runtime.FuncForPC(reflect.ValueOf(task).Pointer()).Name()] = true
	}
	checked := 0
	for _, owner := range []reflect.Type{reflect.TypeFor[App](), reflect.TypeFor[ports](), reflect.TypeFor[enforcer](),
		reflect.TypeFor[policyReader](), reflect.TypeFor[visitors](), reflect.TypeFor[traffic]()} {
		for field := range owner.NumField() {
			of := owner.Field(field).Type
			_, runs := of.MethodByName("Run")
			if !runs || of == reflect.TypeFor[*jobs.Runner]() || of == reflect.TypeFor[*accesslog.Log]() {
				continue // the jobs run in commands, too; the test has no access log
			}
			checked++
			if name := fmt.Sprintf("%s.(*%s).Run-fm", of.Elem().PkgPath(), of.Elem().Name()); !running[name] {
				t.Errorf("%s is no task", name)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d owners have a method Run", checked)
	}
}

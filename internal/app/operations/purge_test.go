package operations

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/spec"
)

func TestAnEmptySourceIsToldAsEmpty(t *testing.T) {
	_, err := parseTarget([]*spec.Source{{Name: "g"}}, diagnostics.Purge{What: "/x"})
	if err == nil || !errors.Is(err, understudy.ErrInvalid) || !strings.HasSuffix(err.Error(), "the name of the source is empty; there is g") {
		t.Error(err)
	}
	_, err = parseTarget([]*spec.Source{{Name: "g"}}, diagnostics.Purge{Source: "h", What: "/x"})
	if err == nil || !strings.HasSuffix(err.Error(), `no source is called "h"; did you mean "g"?; there is g`) {
		t.Error(err)
	}
}

func TestPurgesOfGenericSources(t *testing.T) {
	sp, err := spec.NewGeneric("http://web.example", "none")
	if err != nil {
		t.Fatal(err)
	}
	sources := []*spec.Source{{Name: "web", Spec: sp}}
	got, err := parseTarget(sources, diagnostics.Purge{Source: "web", What: "/a?b=2&a=1"})
	if err != nil || got.target.Key.URI != "/a?b=2&a=1" || got.isRecord() {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseTarget(sources, diagnostics.Purge{Source: "web", What: "calls/1"}); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
}

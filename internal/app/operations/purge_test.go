package operations

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/diagnostics"
	"understudy/spec"
)

func TestAnEmptySourceIsToldAsEmpty(t *testing.T) {
	_, err := parseTarget([]*spec.Source{{Name: "g"}}, diagnostics.Purge{What: "/x"})
	checktest.MustTrue(t, err != nil, "err is nil")
	checktest.True(t, errors.Is(err, understudy.ErrInvalid), "err is %v, want understudy.ErrInvalid", err)
	checktest.True(t, strings.HasSuffix(err.Error(), "the name of the source is empty; there is g"),
		"err.Error() is %q", err.Error())
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
	checktest.MustNoError(t, err, "got %+v", got)
	checktest.Equal(t, got.target.Key.URI, "/a?b=2&a=1", "got.target.Key.URI")
	checktest.True(t, !got.isRecord(), "got.isRecord() is true")
	if _, err := parseTarget(sources, diagnostics.Purge{Source: "web", What: "calls/1"}); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
}

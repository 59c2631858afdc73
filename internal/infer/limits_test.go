// Limits: which statuses are drawn as those of a limit.

package infer_test

import (
	"slices"
	"strings"
	"testing"
)

// TestARefusalWithAMeaningOfItsOwnIsNoLimit draws an API whose answers all tell what remains, and one
// where a 409 asks to come again.
func TestARefusalWithAMeaningOfItsOwnIsNoLimit(t *testing.T) {
	const answers = `"403":{"headers":{"X-RateLimit-Remaining":{}}},"404":{"headers":{"X-RateLimit-Remaining":{}}},
		"409":{"headers":{"Retry-After":{}}},
		"422":{"description":"Too many requests for one record"},"200":{"headers":{"X-RateLimit-Remaining":{}},`
	sp := drawnSpec(t, drafted(t, strings.Replace(queried("", ""), `"200":{`, answers, 1)))
	if want := []int{403, 422}; !slices.Equal(sp.Limits.Statuses, want) {
		t.Errorf("the statuses of a limit are %v, want %v", sp.Limits.Statuses, want)
	}
}

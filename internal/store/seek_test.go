// The store against the rules of places and of text.

package store_test

import (
	"testing"

	"understudy/internal/store/storetest"
)

func TestSeek(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunSeek(t, func(t testing.TB) storetest.Seeker { return testedDB(t) })
}

func TestText(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunText(t, func(t testing.TB) storetest.Seeker { return testedDB(t) })
}

// The stores the tests run on.

package search

import (
	"testing"

	"understudy/internal/store"
)

func openers(*testing.T) map[string]func(o store.Options) full {
	return map[string]func(o store.Options) full{"memory": memory}
}

package fleet

import (
	"net/http"
	"strconv"
	"time"
)

// SignPoke signs a poke for this node.
func (f *Fleet) SignPoke(r *http.Request) { r.Header.Set(pokeHeader, f.SignedAt(f.o.Now())) }

// SignedAt returns the header of a poke for this node.
func (f *Fleet) SignedAt(at time.Time) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return seconds + ":" + f.sign(seconds, f.o.Node.ID)
}

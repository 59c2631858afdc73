package lockwatch_test

import (
	"fmt"
	"time"

	"understudy/kit/lockwatch"
)

// account is locked by its own methods and by those of a transfer.
type account struct {
	mu    lockwatch.Mutex
	cents int
}

func transfer(from, to *account, cents int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.cents, to.cents = from.cents-cents, to.cents+cents
}

// Two transfers in opposite directions can wait for each other forever. This is found although they do not run at the same time.
func Example() {
	lockwatch.Start(time.Now, time.Second)
	defer lockwatch.Stop()
	a, b := &account{cents: 100}, &account{cents: 100}
	transfer(a, b, 20)
	transfer(b, a, 5)
	found := lockwatch.Read().Findings
	last := found[len(found)-1]
	fmt.Println(last.Kind, len(last.Steps))
	// Output: order 2
}

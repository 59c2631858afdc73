// Browser: Debian's chromium, one tab at a time.

// Package browser opens pages in a real browser.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// names are what Debian and others call it.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// Open starts a browser with one tab. The context is the tab; close ends the
// browser. The error says what to install.
func Open(ctx context.Context) (tab context.Context, close func(), err error) {
	path := ""
	for _, name := range names {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("browser: none of %v is installed; on Debian: apt-get install chromium", names)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, endBrowser := chromedp.NewExecAllocator(ctx, options...)
	tab, endTab := chromedp.NewContext(ctx)
	if err := chromedp.Do(tab); err != nil {
		endTab()
		endBrowser()
		return nil, nil, fmt.Errorf("browser: start %s: %w", path, err)
	}
	return tab, func() { endTab(); endBrowser() }, nil
}

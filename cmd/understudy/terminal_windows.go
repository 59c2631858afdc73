// Terminal: how wide it is, as the console says.

package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// columns is how many columns a terminal has.
func columns(f *os.File) (int, error) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info); err != nil {
		return 0, err
	}
	return int(info.Window.Right-info.Window.Left) + 1, nil
}

// This file says that Windows does not tell which process has locked a file.

package locks

import "errors"

// FindWriter returns an error.
func FindWriter(string) (pid int64, err error) {
	return 0, errors.New("Windows does not say which process has locked a file")
}

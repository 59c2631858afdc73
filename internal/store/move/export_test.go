// Doors for the tests.

package move

import "database/sql/driver"

// Tables returns the columns of the tables that are copied, by their names.
func Tables() map[string][]string {
	all := map[string][]string{}
	for _, t := range tables {
		all[t.name] = t.columns
	}
	return all
}

// Unequal returns the error that names a row of a table.
func Unequal(name string, row ...driver.Value) error {
	for _, t := range tables {
		if t.name == name {
			return t.newUnequalError(row)
		}
	}
	return nil
}

// Order returns the names of the tables in the order in which they are copied.
func Order() (names []string) {
	for _, t := range tables {
		names = append(names, t.name)
	}
	return names
}

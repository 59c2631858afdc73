// Doors for the tests.

package move

// Tables returns the columns of the tables that are copied, by their names.
func Tables() map[string][]string {
	all := map[string][]string{}
	for _, t := range tables {
		all[t.name] = t.columns
	}
	return all
}

// Order returns the names of the tables in the order in which they are copied.
func Order() (names []string) {
	for _, t := range tables {
		names = append(names, t.name)
	}
	return names
}

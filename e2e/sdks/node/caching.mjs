// Runs the tests of http-cache-tests, all or those named, against a cache, as its own
// cli.mjs does, and writes what became of each as JSON.
//
//   node caching.mjs BASE [ID,ID...]
import fetch from 'node-fetch'
import { runTests, getResults } from 'http-cache-tests/client/runner.mjs'
import suites from 'http-cache-tests/tests/index.mjs'

const [base, ids] = process.argv.slice(2)
const wanted = ids ? new Set(ids.split(',')) : null
const chosen = suites.map(s => ({ ...s, tests: s.tests.filter(t => !wanted || wanted.has(t.id)) }))
await runTests(chosen, fetch, false, base)
const results = getResults()
const told = {}
for (const suite of chosen) {
  for (const t of suite.tests) {
    if (!(t.id in results)) continue // for browsers alone
    const without = (t.depends_on || []).filter(id => id in results && results[id] !== true)
    const why = without.length ? 'needs ' + without : results[t.id] === true ? '' : results[t.id].join(': ')
    told[t.id] = { kind: t.kind || 'required', why }
  }
}
console.log(JSON.stringify(told))

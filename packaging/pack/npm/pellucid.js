#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0

// Starts the program, which lies in the package of this system beside this one.
'use strict'

const { accessSync, constants, writeSync } = require('node:fs')
const { platform, arch, argv, execve } = process

const system = `${platform}-${arch}`
const systems = require('../package.json').optionalDependencies
const name = `@pellucid-mcp/${system}`
const source = 'build it with `go install github.com/pellucid-mcp/pellucid/cmd/pellucid@latest`'

/** Ends with one line that says what is wrong and what to do. */
function fail(why) {
  writeSync(2, `pellucid: ${why}\n`)
  process.exit(1)
}

function find() {
  if (!Object.hasOwn(systems, name)) {
    fail(`npm has no binary for ${system}; ${source}, or download a release for your system`)
  }
  let program
  try {
    program = require.resolve(`${name}/bin/pellucid${platform === 'win32' ? '.exe' : ''}`)
  } catch {
    fail(`the package ${name} is not installed; install pellucid again on this system, with optional dependencies (without --omit=optional)`)
  }
  try {
    accessSync(program, constants.X_OK)
  } catch (e) {
    fail(`cannot execute ${program} (${e.code}); install pellucid again in a folder from which programs may run`)
  }
  return program
}

/** Runs the program as a child: it gets the signals of this process, and this process ends as it does. */
function run(program, args) {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK']
  for (const s of signals) { // before the program runs, which may ask for one at once
    // Windows gives Ctrl-C to both; kill would end the program there, while it finishes what is under way.
    process.on(s, () => platform === 'win32' || child.kill(s))
  }
  const child = require('node:child_process').spawn(program, args, { stdio: 'inherit' })
  child.on('error', (e) => fail(`cannot start ${program} (${e.code}); install pellucid again`))
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exit(code)
    }
    for (const s of signals) {
      process.removeAllListeners(s)
    }
    process.kill(process.pid, signal)
  })
}

const program = find()
const args = argv.slice(2)
if (execve && platform !== 'win32') {
  // The program takes the place of this process: signals, exit code and streams are its own.
  execve(program, [program, ...args])
}
run(program, args)

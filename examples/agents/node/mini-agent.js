#!/usr/bin/env node
// A stand-in for an agent of npm packages: reads its briefing, changes a file, tells what it did.
const fs = require("fs");
const path = require("path");

if (!process.env.MINI_KEY) {
  console.error("mini-agent: MINI_KEY is not set");
  process.exit(1);
}
const told = fs.readFileSync(process.env.PROCTOR_BRIEFING_FILE, "utf8");
const before = fs.readFileSync("greet.sh", "utf8");
const after = 'echo "Hello, $1"\n';
fs.writeFileSync("greet.sh", after);
const home = path.join(process.env.HOME, ".mini-agent");
fs.mkdirSync(home, { recursive: true });
fs.writeFileSync(path.join(home, "traj.json"), JSON.stringify([{ told }, { file: "greet.sh", before, after }], null, 1));

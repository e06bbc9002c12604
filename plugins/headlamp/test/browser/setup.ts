// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { buildHost } from '../host/build';
import { chromium, host } from './places';

// setup builds the plugin, and the page that shows it, to where the proxies serve files from.
export default async function setup() {
  if (!existsSync(chromium)) {
    throw new Error(`${chromium} is missing: install Debian's package chromium (apt-get install chromium), or set CHROMIUM to the path of one`);
  }
  await buildHost();
  // As npm run build does: without the test's own environment, in which vite builds something else.
  execFileSync(process.execPath, ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'error'], {
    env: { ...process.env, NODE_ENV: 'production', VITEST: '' },
    timeout: 120_000,
  });
  mkdirSync(`${host}/plugin`, { recursive: true });
  copyFileSync('dist/main.js', `${host}/plugin/main.js`);
}

// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { build } from 'vite';
import { buildHost } from '../host/build';
import { chromium, host } from './world';

// setup builds the plugin, and the page that shows it, to where the proxies serve files from.
export default async function setup() {
  if (!existsSync(chromium)) {
    throw new Error(`${chromium} is missing: install Debian's package chromium (apt-get install chromium), or set CHROMIUM to the path of one`);
  }
  await buildHost();
  await build({ logLevel: 'error' });
  mkdirSync(`${host}/plugin`, { recursive: true });
  copyFileSync('dist/main.js', `${host}/plugin/main.js`);
}

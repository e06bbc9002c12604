// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

export const chromium = process.env.CHROMIUM ?? '/usr/bin/chromium';

// host is the directory with the built pages, which kubectl proxy serves.
export const host = new URL('../../dist-host', import.meta.url).pathname;

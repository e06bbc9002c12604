// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, Chip, Typography, useTheme } from '@mui/material';
import { type Bar, inWords, type Tone } from '../model/bars';

const toneWords: Record<Tone, string> = { good: '', near: 'near its limit', full: 'nothing left', over: 'above the limit', unknown: 'not counted' };

// useTones are the colours of bars: as on a terminal, darker on the light theme and lighter on the dark one. The words beside a
// bar say the same.
export function useTones(): Record<Tone, string> {
  const dark = useTheme().palette.mode === 'dark';
  return {
    good: dark ? '#66bb6a' : '#2e7d32',
    near: dark ? '#ffb74d' : '#b26a00',
    full: dark ? '#ef7b7b' : '#c62828',
    over: dark ? '#ef7b7b' : '#c62828',
    unknown: dark ? '#9e9e9e' : '#757575',
  };
}

// Meter draws used and, lighter, reserved.
export function Meter({ bar, label }: { bar: Bar; label: string }) {
  const colour = useTones()[bar.tone];
  const part = { height: '100%', bgcolor: colour };
  return (
    <Box
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.min(bar.percent ?? 0, 100)}
      aria-valuetext={inWords(bar)}
      sx={{ display: 'flex', height: 12, border: 1, borderColor: bar.tone === 'unknown' ? colour : 'text.secondary', borderRadius: 1, overflow: 'hidden' }}
    >
      <Box sx={{ ...part, width: `${bar.usedShare * 100}%` }} />
      <Box sx={{ ...part, width: `${bar.reservedShare * 100}%`, opacity: 0.5 }} />
    </Box>
  );
}

interface BarsProps {
  bars: Bar[];
  quota: string;
}

// Bars shows each resource of a quota: the bar, and the figures below it.
export function Bars({ bars, quota }: BarsProps) {
  return (
    <Box
      component="ul"
      sx={{ listStyle: 'none', m: 0, mb: 1, p: 0, display: 'grid', gap: 2, gridTemplateColumns: 'repeat(auto-fill, minmax(min(100%, 320px), 1fr))' }}
    >
      {bars.map(bar => (
        <Box component="li" key={bar.resource}>
          <Box sx={{ display: 'flex', justifyContent: 'space-between', columnGap: 1, flexWrap: 'wrap' }}>
            <Typography component="span" sx={{ fontWeight: 600, overflowWrap: 'anywhere' }}>
              {bar.resource}
            </Typography>
            <Typography component="span" sx={{ ml: 'auto' }}>
              {bar.percent === null ? '?' : `${bar.percent}%`}
              {toneWords[bar.tone] && `, ${toneWords[bar.tone]}`}
            </Typography>
          </Box>
          <Meter bar={bar} label={`${bar.resource} of ${quota}`} />
          <Typography variant="body2" sx={{ overflowWrap: 'anywhere' }}>
            {bar.used} used, {bar.reserved} reserved, {bar.available} available, of {bar.hard}
            {bar.here !== undefined && `; ${bar.here} used here`}
          </Typography>
        </Box>
      ))}
    </Box>
  );
}

// Tag is a word in a frame, such as a mode.
export function Tag({ children }: { children: string }) {
  return (
    <Chip
      size="small"
      variant="outlined"
      label={children}
      sx={{ color: 'text.primary', borderColor: 'text.secondary', height: 'auto', minHeight: 24, '& .MuiChip-label': { whiteSpace: 'normal' } }}
    />
  );
}

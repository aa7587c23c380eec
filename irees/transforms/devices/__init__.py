"""Programs that span devices: where ops run, what is transferred, and a function per device."""

//! USDPAA's functions. Each takes its arguments as they come, does what the managers can, and gives the result that
//! USDPAA gives: 0, or a negative number of an error.

mod fman;
mod netcfg;
mod of;

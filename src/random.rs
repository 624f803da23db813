//! Numbers that nobody can guess, and their spelling.

use std::fmt::Write;
use std::io;

/// `N` bytes from the operating system.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // writing to a String cannot fail
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A number from 0 to `below` - 1, each as likely as the other; 0 when `below` is 0.
fn number_below(below: u8) -> io::Result<u8> {
    if below == 0 {
        return Ok(0);
    }
    // Values at the end that would make small results likelier are drawn again.
    let fair = u8::MAX - u8::MAX % below;
    loop {
        let [drawn] = bytes::<1>()?;
        if drawn < fair {
            return Ok(drawn % below);
        }
    }
}

/// GPUStack 0.7's: twelve characters, among them a lower-case letter, a capital, a digit and a special character.
pub fn password() -> io::Result<String> {
    const LENGTH: u8 = 12;
    const CLASSES: [&[u8]; 4] =
        [b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789", b"!@#$%^&*_+"];
    let all = CLASSES.concat();
    let mut letters = Vec::with_capacity(LENGTH.into());
    for class in CLASSES {
        letters.push(pick(class)?);
    }
    while letters.len() < LENGTH.into() {
        letters.push(pick(&all)?);
    }
    // Fisher and Yates: the first four must not tell their class by their place
    for last in (1..LENGTH).rev() {
        letters.swap(last.into(), number_below(last + 1)?.into());
    }
    Ok(letters.into_iter().map(char::from).collect())
}

fn pick(letters: &[u8]) -> io::Result<u8> {
    let count = u8::try_from(letters.len()).unwrap_or(u8::MAX);
    let chosen = letters.get(usize::from(number_below(count)?));
    chosen.copied().ok_or_else(|| io::Error::other("no letter to choose from"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_keep_leading_zeros() {
        assert_eq!(hex(&[0, 1, 0xab]), "0001ab");
    }

    #[test]
    fn every_password_has_all_four_classes() {
        for _ in 0..200 {
            let password = password().unwrap();
            assert_eq!(password.len(), 12);
            assert!(password.chars().any(|c| c.is_ascii_lowercase()), "{password}");
            assert!(password.chars().any(|c| c.is_ascii_uppercase()), "{password}");
            assert!(password.chars().any(|c| c.is_ascii_digit()), "{password}");
            assert!(password.chars().any(|c| "!@#$%^&*_+".contains(c)), "{password}");
        }
    }

    #[test]
    fn every_number_below_the_bound_comes_up() {
        let mut seen = [false; 10];
        for _ in 0..2_000 {
            seen[usize::from(number_below(10).unwrap())] = true;
        }
        assert_eq!(seen, [true; 10]);
    }
}

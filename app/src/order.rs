//! Sorting. The algorithm is compiled once, for places in a list, and not again for whatever is in the list.

use std::cmp::Ordering;

/// Sorts; what compares equal stays in its order.
pub fn sort<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let mut places: Vec<usize> = (0..items.len()).collect();
    sort_places(&mut places, &|left, right| {
        items.get(left).zip(items.get(right)).map_or(Ordering::Equal, |(left, right)| compare(left, right))
    });
    let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(places.into_iter().filter_map(|place| unsorted.get_mut(place)?.take()));
}

fn sort_places(places: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    places.sort_unstable_by(|left, right| compare(*left, *right).then(left.cmp(right)));
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(keys: Vec<u8>) {
            let mut items: Vec<(u8, usize)> = keys.into_iter().map(|key| key % 8).zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            sort(&mut items, |left, right| left.0.cmp(&right.0));
            proptest::prop_assert_eq!(items, expected);
        }
    }
}

//! Values of any type that messages consist of: each field has another value, and each variant its turn.

use std::collections::{BTreeMap, BTreeSet};

use serde::{
    Deserialize,
    de::{
        self, DeserializeSeed, Deserializer, EnumAccess, SeqAccess, VariantAccess, Visitor,
        value::{Error, U32Deserializer},
    },
    forward_to_deserialize_any,
};

/// Makes values as a deserializer that has nothing to read.
#[derive(Default)]
pub struct Samples {
    /// The value that was made last.
    last: u64,
    /// Of each enumeration how many variants there are, and which have had their turn.
    pub variants: BTreeMap<&'static str, (u32, BTreeSet<u32>)>,
    /// Enumerations of which not all variants are made: how many of the first.
    pub limits: BTreeMap<&'static str, u32>,
    /// The variant of the next enumeration.
    wanted: Option<u32>,
}

impl Samples {
    /// A value; its own variant is this one, if it has some.
    pub fn of<T: for<'de> Deserialize<'de>>(&mut self, variant: Option<u32>) -> T {
        self.wanted = variant;
        T::deserialize(self).expect("it takes any value")
    }

    /// Numbers that do not repeat, of one, two and more bytes.
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.next() as $number)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Samples {
    type Error = Error;

    numbers!(
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32
    );

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.next().is_multiple_of(2))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(format!("s{}", self.next()))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.next().is_multiple_of(4) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { samples: self, left: 2 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { samples: self, left: len })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { samples: self, left: fields.len() })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let count = self.limits.get(name).copied().unwrap_or(variants.len() as u32);
        let (_, seen) = self.variants.entry(name).or_insert((count, BTreeSet::new()));
        let first_new = (0..count).find(|variant| !seen.contains(variant));
        let variant = self.wanted.take().or(first_new).unwrap_or(self.last as u32 % count);
        seen.insert(variant);
        visitor.visit_enum(Variant { samples: self, variant })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(de::Error::custom("messages have no such types"))
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        i8 i64 i128 u128 f32 f64 char str bytes byte_buf unit_struct tuple_struct map identifier
        ignored_any
    }
}

struct Items<'a> {
    samples: &'a mut Samples,
    left: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.samples).map(Some)
    }
}

struct Variant<'a> {
    samples: &'a mut Samples,
    variant: u32,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Error> {
        let number: U32Deserializer<Error> = de::IntoDeserializer::into_deserializer(self.variant);
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.samples)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.samples.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.samples.deserialize_tuple(fields.len(), visitor)
    }
}

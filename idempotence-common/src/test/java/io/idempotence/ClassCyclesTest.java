package io.idempotence;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import org.junit.jupiter.api.Test;

/** Tests of what {@link ClassCycles} calls a cycle, on small ones. */
class ClassCyclesTest {
    private static void check(Class<?>... types) {
        ClassCycles.none().check(new ClassFileImporter().importClasses(types));
    }

    @Test
    void twoClassesThatDependOnEachOtherAreACycle() {
        assertThatThrownBy(() -> check(Hen.class, Egg.class))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("2 times")
                .hasMessageContaining("""
                        io.idempotence.Egg depends on itself:
                            Method <io.idempotence.Egg.laidBy()> has return type <io.idempotence.Hen> in (ClassCyclesTest.java:0)
                            Method <io.idempotence.Hen.lays()> has return type <io.idempotence.Egg> in (ClassCyclesTest.java:0)
                        """)
                .hasMessageContaining("io.idempotence.Hen depends on itself:");
    }

    @Test
    void aCycleMayLeadThroughOthersAndThroughNestedClasses() {
        assertThatThrownBy(() -> check(Farm.class, Barn.class, Barn.Door.class, Key.class))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("""
                        io.idempotence.Farm depends on itself:
                            Method <io.idempotence.Farm.barn()> has return type <io.idempotence.Barn> in (ClassCyclesTest.java:0)
                            Method <io.idempotence.Barn$Door.key()> has return type <io.idempotence.Key> in (ClassCyclesTest.java:0)
                            Method <io.idempotence.Key.opens()> has return type <io.idempotence.Farm> in (ClassCyclesTest.java:0)
                        """);
    }

    @Test
    void aClassLiteralIsNoDependency() {
        check(Logged.class, Log.class);
        check(Marked.class, Marker.class, Mark.class);
    }

    @Test
    void aTypeMayReferToItsSubtypesAndItsBuilder() {
        check(Shape.class, Circle.class, ShapeBuilder.class);
    }
}

interface Hen {
    Egg lays();
}

interface Egg {
    Hen laidBy();
}

interface Farm {
    Barn barn();
}

interface Barn {
    interface Door {
        Key key();
    }
}

interface Key {
    Farm opens();
}

class Logged {
    Class<?> logger() {
        return Log.class;
    }
}

interface Log {
    Logged last();
}

@interface Mark {
    Class<?> value();
}

@Mark(Marker.class)
interface Marked {}

interface Marker {
    Marked marked();
}

interface Shape {
    Circle round();

    ShapeBuilder toBuilder();
}

interface Circle extends Shape {}

interface ShapeBuilder {
    Shape build();
}

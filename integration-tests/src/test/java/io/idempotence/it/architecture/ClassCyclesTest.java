package io.idempotence.it.architecture;

import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.idempotence.ClassCycles;

/** The arrows between the classes of a package, in the library modules and the starter. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ProductTypes.class)
class ClassCyclesTest {
    @ArchTest
    static final ArchRule classesHaveNoCycles = ClassCycles.none();
}

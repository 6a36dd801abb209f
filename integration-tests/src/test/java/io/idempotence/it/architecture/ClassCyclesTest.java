package io.idempotence.it.architecture;

import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import io.idempotence.ClassCycles;

/** The dependencies between the classes of each package, in the library modules and the starter. They have no cycles. */
@AnalyzeClasses(packages = "io.idempotence", importOptions = ProductTypes.class)
class ClassCyclesTest {
    @ArchTest
    static final ArchRule classesHaveNoCycles = ClassCycles.none();
}
